// A page that is opened as a file may not read other files: its search lists the pages without a passage of each.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// What scrolls sideways can be scrolled with the keyboard too.
addEventListener("DOMContentLoaded", () => {
  for (const wide of document.querySelectorAll("pre, .table-wrapper")) wide.tabIndex = 0;
});
