// Package picture draws the graph of a pod as SVG.
//
// Which stage goes where is decided by dagre, a layout library in JavaScript
// that is compiled in (dagre/, made by test/tools/npm/fetch.sh) and run by an
// interpreter in this process, so that the terminal, the page without
// JavaScript and a saved file show one picture.
package picture
