// Keeps a page as it is on the node: the server sends its body whenever something has changed.
"use strict";

(() => {
	const main = document.getElementById("page");
	const light = document.getElementById("live");
	let ahead = 0; // how much this clock is ahead of the node's, in milliseconds
	let stream, retry;

	function short(ms) {
		const s = ms / 1000;
		const two = (n) => String(Math.floor(n)).padStart(2, "0");
		if (s < 1) return Math.floor(ms) + "ms";
		if (s < 10) return (Math.floor(s * 100) / 100).toFixed(2) + "s";
		if (s < 60) return (Math.floor(s * 10) / 10).toFixed(1) + "s";
		if (s < 3600) return Math.floor(s / 60) + "m" + two(s % 60) + "s";
		if (s < 86400) return Math.floor(s / 3600) + "h" + two((s / 60) % 60) + "m";
		return Math.floor(s / 86400) + "d" + two((s / 3600) % 24) + "h";
	}

	function tick() {
		const now = Date.now() - ahead;
		for (const e of main.querySelectorAll("[data-since]")) {
			e.textContent = (e.dataset.word || "") + short(Math.max(0, now - e.dataset.since));
		}
	}

	function say(state, text) {
		light.dataset.state = state;
		light.textContent = text;
	}

	function setClock() {
		const at = main.querySelector("[data-now]");
		if (at) ahead = Date.now() - at.dataset.now;
	}

	function listen() {
		clearTimeout(retry);
		stream = new EventSource(location.pathname + location.search);
		stream.addEventListener("page", (e) => {
			Idiomorph.morph(main, e.data, { morphStyle: "innerHTML", ignoreActive: false });
			setClock();
			say("on", "live");
		});
		stream.addEventListener("gone", () => say("off", "no longer on this node"));
		stream.addEventListener("trouble", (e) => say("off", e.data));
		stream.onerror = () => {
			say("off", "no answer from the agent, trying again");
			stream.close();
			retry = setTimeout(listen, 2000);
		};
	}

	// A page that nobody sees needs no news.
	document.addEventListener("visibilitychange", () => {
		if (document.hidden) {
			clearTimeout(retry);
			stream.close();
		} else {
			listen();
		}
	});
	window.addEventListener("pagehide", () => stream.close());

	setClock();
	setInterval(tick, 1000);
	listen();
})();
