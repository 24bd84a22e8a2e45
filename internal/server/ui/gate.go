package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
)

// Gate lets one browser through to the page on a loopback address, where every
// user of the machine, and every page that a browser there shows, can knock.
//
// The token in URL is good for one visit, which gets a cookie. A request must
// name the address that the gate stands on as its host, so that no other name
// can be made to mean it, and must not come from a page of another origin. What
// is not a look at the page is refused. It is safe for concurrent use.
type Gate struct {
	host    string
	next    http.Handler
	session string

	mu    sync.Mutex
	token string // empty: used
}

// NewGate returns a gate that stands on host, as 127.0.0.1:PORT, before next.
func NewGate(host string, next http.Handler) *Gate {
	return &Gate{host: host, next: next, session: rand.Text(), token: rand.Text()}
}

// URL returns the address that opens the gate, once.
func (g *Gate) URL() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return "http://" + g.host + Path + "?token=" + g.token
}

// cookie is the name of the session's cookie. Cookies know no ports, so it tells gates apart.
func (g *Gate) cookie() string { return "flowlet-" + g.host[strings.LastIndexByte(g.host, ':')+1:] }

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Protect(w.Header())
	token := r.URL.Query().Get("token")
	switch {
	case r.Host != g.host, !sameOrigin(r, "http://"+g.host), r.Method != http.MethodGet && r.Method != http.MethodHead:
		refuse(w)
	case !strings.HasPrefix(r.URL.Path, Path) && r.URL.Path != "/":
		refuse(w)
	case g.known(r) && r.URL.Path != "/" && token == "":
		r.Header.Del("Cookie")
		g.next.ServeHTTP(w, r)
	case g.known(r):
		http.Redirect(w, r, Path, http.StatusSeeOther)
	case g.take(token):
		http.SetCookie(w, &http.Cookie{Name: g.cookie(), Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
		http.Redirect(w, r, Path, http.StatusSeeOther)
	default:
		refuse(w)
	}
}

func sameOrigin(r *http.Request, own string) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || origin == own
}

func (g *Gate) known(r *http.Request) bool {
	c, err := r.Cookie(g.cookie())
	return err == nil && equal(c.Value, g.session)
}

// take uses the token up.
func (g *Gate) take(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" || !equal(token, g.token) {
		return false
	}
	g.token = ""
	return true
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func refuse(w http.ResponseWriter) {
	http.Error(w, "Not allowed. The address that `flowlet ui` prints opens the page once, in one browser: run it again for another.", http.StatusForbidden)
}
