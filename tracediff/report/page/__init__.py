"""The HTML report: `html` assembles the page and its static sections, `script_data` and `figures` its data;
page.css and page.js are its style and script; the dashboard has the other styles and scripts, too.
"""
