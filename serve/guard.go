package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// policy is the content security policy of pages: scripts and styles come from files of ours, everything else is
// refused.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// reportPolicy is that of reports, which have their styles inside and no scripts. They are shown as if from nowhere.
const reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; sandbox allow-popups"

const tokenCookie = "gfnem-token"

// guard refuses what comes from elsewhere: from other sites, under other names of this machine, without the token.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hurry(w)
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case s.options.Token == "" && !isLoopback(r.Host):
			// A site whose name leads to this machine (DNS rebinding) is one of its own for a browser.
			refuse(w, http.StatusForbidden, "this server answers to localhost and 127.0.0.1 alone")
		case !sameSite(r):
			refuse(w, http.StatusForbidden, "requests from other sites are refused")
		case r.URL.Path == "/healthz" || s.knows(r):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && s.isToken(r.URL.Query().Get("token")):
			// Not strict: a link that a colleague sends leads to a page. What else other sites may ask is up to
			// sameSite.
			http.SetCookie(w, &http.Cookie{
				Name: tokenCookie, Value: r.URL.Query().Get("token"), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
			})
			clean := *r.URL
			q := clean.Query()
			q.Del("token")
			clean.RawQuery = q.Encode()
			http.Redirect(w, r, clean.RequestURI(), http.StatusSeeOther)
		default:
			h.Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "a token is needed: open this address with ?token=TOKEN, or send Authorization: Bearer TOKEN")
		}
	})
}

// hurry ends a request that does not come, and an answer that is not taken, so that slow clients hold nothing for long.
func (s *server) hurry(w http.ResponseWriter) {
	c, now := http.NewResponseController(w), time.Now()
	c.SetReadDeadline(now.Add(s.options.Timeout))
	c.SetWriteDeadline(now.Add(s.options.Timeout + takenWithin))
}

// takenWithin is how long a client may take to read an answer.
const takenWithin = time.Minute

// sameSite says whether a request comes from our own pages, from the user, or from a program that is no browser.
func sameSite(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	// A link from elsewhere may lead to a page; nothing else may.
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" && !strings.HasPrefix(r.URL.Path, "/api/")
}

// knows says whether a request has the token, if one is needed.
func (s *server) knows(r *http.Request) bool {
	if s.options.Token == "" {
		return true
	}
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && s.isToken(given) {
		return true
	}
	c, err := r.Cookie(tokenCookie)
	return err == nil && s.isToken(c.Value)
}

// isToken compares in constant time.
func (s *server) isToken(given string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.options.Token))
	return s.options.Token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// isLoopback says whether a host, with a port or without, is this machine for itself.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
