// The browser tests look at the page of flowlet in Debian's chromium, and make the pictures of the documentation. They
// are a module of their own because a browser's protocol is no dependency of the agent.
module github.com/flowlet/flowlet/test/browser

go 1.26.0

require (
	github.com/chromedp/cdproto v0.160.1
	github.com/chromedp/chromedp v0.23.1
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
