"""The HTML report: `html` puts the page together, `parts` writes its static sections, `tables` and `figures` its data;
page.css and page.js are its own.
"""
