#!/bin/bash
# Makes the pictures of this folder from a node that runs: `make run`, with or without RUNTIME=sim, in another terminal.
# It needs chromium and npm (Debian: apt-get install chromium npm).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${1:-.run/flowlet}
tools=${XDG_CACHE_HOME:-$HOME/.cache}/flowlet/pictures
mkdir -p "$tools"
[ -d "$tools/node_modules/playwright-core" ] || npm install --silent --no-save --ignore-scripts --prefix "$tools" playwright-core@1.56.1

page=$(mktemp)
bin/flowlet ui --root-dir "$root" >"$page" &
ui=$!
trap 'kill $ui; rm -f "$page"' EXIT
for _ in $(seq 50); do [ -s "$page" ] && break; sleep 0.1; done
NODE_PATH=$tools/node_modules CHROMIUM=$(command -v chromium) node docs/pictures/pictures.cjs "$(cat "$page")"
