package sweep

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"net/netip"
	"strings"
)

// parseRoutes reads /proc/net/route: a heading, then lines of interface, destination, gateway, flags, three counters and
// mask, addresses as hex numbers in the machine's byte order. Default routes are left out.
func parseRoutes(table string) []netip.Prefix {
	var routes []netip.Prefix
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		dst, err1 := hex.DecodeString(f[1])
		mask, err2 := hex.DecodeString(f[7])
		if err1 != nil || err2 != nil || len(dst) != 4 || len(mask) != 4 {
			continue
		}
		var addr [4]byte
		binary.NativeEndian.PutUint32(addr[:], binary.BigEndian.Uint32(dst))
		if n := bits.OnesCount32(binary.BigEndian.Uint32(mask)); n > 0 {
			routes = append(routes, netip.PrefixFrom(netip.AddrFrom4(addr), n))
		}
	}
	return routes
}
