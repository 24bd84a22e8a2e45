package sweep

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hostTables are the nftables that the portmap plugin makes with the first host port, and never removes.
var hostTables = []string{"ip cni_hostport", "ip6 cni_hostport"}

// freeSubnet is a private /24 that no address or route of the machine touches. start makes two nodes that look at the same
// time choose differently.
func freeSubnet(start byte) (netip.Prefix, error) {
	taken, err := takenPrefixes()
	if err != nil {
		return netip.Prefix{}, err
	}
	for i := range 256 {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, start + byte(i), 0}), 24)
		if !slices.ContainsFunc(taken, p.Overlaps) {
			return p, nil
		}
	}
	return netip.Prefix{}, errors.New("no free subnet in 10.213.0.0/16 for pods: remove a route or an address there (ip route)")
}

// takenPrefixes are the machine's IPv4 routes and addresses, the default route apart.
func takenPrefixes() ([]netip.Prefix, error) {
	var taken []netip.Prefix
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			taken = append(taken, p.Masked())
		}
	}
	return append(taken, parseRoutes(readTrimmed("/proc/net/route"))...), nil
}

// removeBridge removes the bridge once its ports are gone. It needs no ip command, which a small machine may lack.
func removeBridge(name string, deadline time.Time) error {
	path := filepath.Join("/sys/class/net", name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// Ports go away when the network namespaces of their pods do, which the kernel does in the background.
	for {
		ports, _ := filepath.Glob(filepath.Join(path, "brif", "*"))
		if len(ports) == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	ifr.SetUint16(0) // flags: not up
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("take bridge %s down: %w", name, err)
	}
	cname, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCBRDELBR, uintptr(unsafe.Pointer(cname))); errno != 0 {
		return fmt.Errorf("remove bridge %s: %w", name, errno)
	}
	return nil
}

// presentTables are those of hostTables that exist.
func presentTables() []string {
	var present []string
	for _, t := range hostTables {
		if nft("list table "+t) == nil {
			present = append(present, t)
		}
	}
	return present
}

// removeTables removes those of hostTables that were not there before.
func removeTables(before []string) error {
	for _, t := range presentTables() {
		if slices.Contains(before, t) {
			continue
		}
		if err := nft("delete table " + t); err != nil {
			return fmt.Errorf("remove firewall table %s: %w", t, err)
		}
	}
	return nil
}

// nft runs one command; without the program there are no tables of ours, because the plugin needs it, too.
func nft(command string) error {
	path, err := exec.LookPath("nft")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/nft"); err != nil {
			return err
		}
	}
	return exec.Command(path, command).Run()
}
