"""The report: six parts made from the results, written as HTML and Markdown."""
