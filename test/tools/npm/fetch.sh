#!/bin/bash
# Fetches the JavaScript libraries that are compiled in, at their pinned versions, with their licences:
#   dagre       lays out graphs            internal/explain/picture/dagre
#   idiomorph   changes a page in place    internal/server/ui/static
# It needs npm. To take another version, change it here with its checksum (npm view NAME@VERSION dist.integrity).
set -euo pipefail
cd "$(dirname "$0")/../../.."

fetch() { # NAME@VERSION INTEGRITY FILE DESTINATION LICENCE
	local dir sum
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' RETURN
	(cd "$dir" && npm pack --silent "$1" >/dev/null && mv ./*.tgz p.tgz && tar xzf p.tgz)
	sum=sha512-$(openssl dgst -sha512 -binary "$dir/p.tgz" | base64 -w0)
	[ "$sum" = "$2" ] || { echo "$1 has the checksum $sum, want $2" >&2; exit 1; }
	grep -v '^//# sourceMappingURL=' "$dir/package/$3" >"$4/$(basename "$3")"
	cp "$dir/package/LICENSE" "$4/$5"
}

fetch @dagrejs/dagre@3.1.3 sha512-X4aUTwOReZvthaZWOVHqlJ52/ZdhZFEM4+Lh/uR4XooUSLE6p71bcy7MPGzYnNUcNh+nj+i/qJQpCMIdQnSmrg== \
	dist/dagre.min.js internal/explain/picture/dagre LICENSE
fetch idiomorph@0.8.0 sha512-R47JBL+6jHDQvcnbppIUtXXcxi5h6+wuCEEZXnRhUltsgzPFKzThL5PuHppP9ypJuy+7WawcY1TsSBD/iQbMhw== \
	dist/idiomorph.min.js internal/server/ui/static idiomorph.LICENSE
