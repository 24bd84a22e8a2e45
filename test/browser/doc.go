// Package browser stands up what a look at the page needs: an agent on the
// simulated runtime with some pods, `flowlet ui`, and a headless chromium.
// Root is not needed.
package browser
