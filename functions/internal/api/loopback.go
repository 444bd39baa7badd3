package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// forwarded are the headers by which a proxy says that it speaks for another.
var forwarded = [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// remote says why a request does not come from this machine itself, or "".
// A peer on loopback is not enough: it may be a proxy, a browser on another
// site's behalf, or a browser that was led here by a name (DNS rebinding).
func remote(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return "this one is on another"
	}
	if !loopbackHost(r.Host) {
		return "this one asks for another host"
	}
	for _, name := range forwarded {
		if _, ok := r.Header[name]; ok {
			return "this one came through a proxy (" + name + ")"
		}
	}
	if site := first(r.Header, "Sec-Fetch-Site"); site == "cross-site" {
		return "this one was made by another site (Sec-Fetch-Site)"
	}
	if origin, ok := r.Header["Origin"]; ok && !loopbackOrigin(origin[0]) {
		return "this one was made by another site (Origin)"
	}
	return ""
}

// loopbackHost reports whether the host of a URL, with or without a port,
// can only be this machine.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && loopbackHost(u.Host)
}
