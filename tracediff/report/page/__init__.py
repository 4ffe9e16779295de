"""The HTML report: `html` assembles the page, `html_sections` its static sections, `tables` and `figures` its data;
page.css and page.js are its style and script, flame.js and perfetto.js are scripts that the dashboard has too.
"""
