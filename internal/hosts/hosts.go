// Package hosts names what a program may reach on the internet: a [Host] is a name and
// a port, as a tool declares it, and [Public] reports which addresses are on the internet.
//
// It looks up no name and connects to nothing.
package hosts

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// A Host is a name with a port. The zero value is invalid.
type Host struct {
	Name string // lower case: at least two labels of letters, digits and hyphens; never an address
	Port uint16 // not 0
}

// String returns the host in the form that [Parse] reads.
func (h Host) String() string { return h.Name + ":" + strconv.Itoa(int(h.Port)) }

// maxName is the maximum length of a DNS name.
const maxName = 253

// maxLabel is the maximum length of one label of a name.
const maxLabel = 63

// Parse reads "api.github.com:443". It refuses names that two programs could read
// differently: addresses in any spelling, single labels (which a search domain may
// complete), a trailing dot, and non-ASCII letters (write these as "xn--…").
func Parse(s string) (Host, error) {
	name, port, ok := strings.Cut(s, ":")
	if !ok {
		return Host{}, errors.New(`a host is a name and a port, as "api.github.com:443"`)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return Host{}, errors.New("the port is a number from 1 to 65535")
	}
	name = lower(name)
	if err := checkName(name); err != nil {
		return Host{}, err
	}
	return Host{Name: name, Port: uint16(n)}, nil
}

// lower maps only ASCII letters, so that no other letter becomes one.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func checkName(name string) error {
	if len(name) > maxName {
		return errors.New("the name is too long")
	}
	labels := strings.Split(name, ".")
	if len(labels) < 2 {
		return errors.New(`the name needs a dot, as in "example.com"`)
	}
	for _, l := range labels {
		if l == "" || len(l) > maxLabel || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return errors.New(`the name has labels of letters, digits and hyphens, with dots between them; other letters are written "xn--…"`)
		}
	}
	// No top-level domain begins with a digit, but every spelling of an IPv4 address ends
	// with a number, even "0x7f.1".
	if last := labels[len(labels)-1]; '0' <= last[0] && last[0] <= '9' {
		return errors.New("the name is an address; a host is named")
	}
	return nil
}

// Public reports whether an address is on the internet: it does not belong to this
// machine, to a private network, or to a special-purpose range. An IPv4 address inside
// an IPv6 address is judged as IPv4.
func Public(ip netip.Addr) bool {
	ip = Plain(ip)
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && ip.Zone() == "" && !special(ip)
}

// Plain returns the IPv4 address inside an IPv6 address, and any other address as it is.
func Plain(ip netip.Addr) netip.Addr {
	if nat64 := netip.MustParsePrefix("64:ff9b::/96"); nat64.Contains(ip) {
		b := ip.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip.Unmap()
}

// special reports whether an address is in a range that IANA reserves for special
// purposes and that [netip.Addr] has no method for.
func special(ip netip.Addr) bool {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"168.63.129.16/32", // Azure's metadata address, on each of its virtual machines
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		if netip.MustParsePrefix(text).Contains(ip) {
			return true
		}
	}
	// Only 2000::/3 is global unicast.
	return ip.Is6() && !netip.MustParsePrefix("2000::/3").Contains(ip)
}
