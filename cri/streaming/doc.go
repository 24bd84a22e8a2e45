// Package streaming passes the streams of exec, attach and port-forward from
// a client of the agent to the runtime's streaming server and back.
//
// The runtime gives a URL for each stream, which is good for one use; what
// comes from the client is sent there. SPDY and the WebSocket protocols of
// the runtimes go through as they are. Two newer ones, which runtimes do not
// know, are translated to SPDY: v5 of remote commands, which can close one
// stream of several, and SPDY inside of WebSocket for ports.
//
// A stream ends with either side, and with the request's context, so that the
// server must end that context when the client's connection is gone or the
// agent stops. No content is logged.
package streaming
