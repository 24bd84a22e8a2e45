package nodehttp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flowlet/flowlet/internal/nodehttp"
)

func TestMain(m *testing.M) {
	// The environment is read once per process, by the first who asks for a proxy.
	_ = os.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	goleak.VerifyTestMain(m)
}

func TestHost(t *testing.T) {
	for name, tc := range map[string]struct {
		hostNetwork bool
		ips         []string
		node        string
		want        string
	}{
		"pod network":            {ips: []string{"10.0.0.1", "fd00::1"}, node: "192.0.2.1", want: "10.0.0.1"},
		"node's network":         {hostNetwork: true, ips: []string{"10.0.0.1"}, node: "192.0.2.1", want: "192.0.2.1"},
		"node's IP is not known": {hostNetwork: true, ips: []string{"10.0.0.1"}, want: "10.0.0.1"},
		"no IP yet":              {node: "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodehttp.Host(&v1.Pod{Spec: v1.PodSpec{HostNetwork: tc.hostNetwork}}, tc.ips, tc.node)
			require.Equal(t, tc.want, got)
			if tc.want == "" {
				require.ErrorIs(t, err, nodehttp.ErrNoIP)
			}
		})
	}
}

func TestPort(t *testing.T) {
	c := &v1.Container{Name: "web", Ports: []v1.ContainerPort{
		{Name: "http", ContainerPort: 8080}, {Name: "81", ContainerPort: 9000}, {Name: "http", ContainerPort: 1},
	}}
	for name, tc := range map[string]struct {
		ref     intstr.IntOrString
		want    int
		problem string
	}{
		"number":                  {intstr.FromInt32(80), 80, ""},
		"name":                    {intstr.FromString("http"), 8080, ""},
		"a number in quotes":      {intstr.FromString("82"), 82, ""},
		"a name that is a number": {intstr.FromString("81"), 9000, ""},
		"unknown name":            {intstr.FromString("admin"), 0, `container web has no port of that name`},
		"too large":               {intstr.FromInt32(70000), 0, "between 1 and 65535"},
		"too large, in quotes":    {intstr.FromString("70000"), 0, "between 1 and 65535"},
		"zero":                    {intstr.FromInt32(0), 0, "between 1 and 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodehttp.Port(tc.ref, c)
			require.Equal(t, tc.want, got)
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	get := nodehttp.Get{
		Action:    &v1.HTTPGetAction{Path: "/healthz?full=1", Port: intstr.FromInt32(80)},
		Container: &v1.Container{Name: "web"}, Host: "10.0.0.1", Agent: "kube-probe/1.37",
	}
	req, err := get.Request(t.Context())
	require.NoError(t, err)
	require.Equal(t, "http://10.0.0.1:80/healthz?full=1", req.URL.String())
	require.Equal(t, http.Header{"User-Agent": {"kube-probe/1.37"}, "Accept": {"*/*"}}, req.Header)
	require.Empty(t, req.Host)

	get.Action = &v1.HTTPGetAction{
		Path: "%zz", Port: intstr.FromInt32(443), Scheme: v1.URISchemeHTTPS, Host: "fd00::1",
		HTTPHeaders: []v1.HTTPHeader{
			{Name: "host", Value: "web.example"},
			{Name: "user-agent", Value: "mine"},
			{Name: "Accept", Value: ""},
			{Name: "X-Two", Value: "a"},
			{Name: "X-Two", Value: "b"},
		},
	}
	req, err = get.Request(t.Context())
	require.NoError(t, err)
	require.Equal(t, "https://[fd00::1]:443/%25zz", req.URL.String(), "a path that is no URL is sent all the same")
	require.Equal(t, "web.example", req.Host)
	require.Equal(t, http.Header{"User-Agent": {"mine"}, "Host": {"web.example"}, "X-Two": {"a", "b"}}, req.Header)

	get.Action = &v1.HTTPGetAction{Port: intstr.FromString("none")}
	_, err = get.Request(t.Context())
	require.ErrorContains(t, err, "no port of that name")
	get.Action, get.Host = &v1.HTTPGetAction{Port: intstr.FromInt32(1)}, ""
	_, err = get.Request(t.Context())
	require.ErrorIs(t, err, nodehttp.ErrNoIP)
}

// do sends a GET to a path of a server.
func do(t *testing.T, s *httptest.Server, path string) (nodehttp.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	require.NoError(t, err)
	return nodehttp.New().Do(req, 10*time.Second)
}

func TestRedirects(t *testing.T) {
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	defer s.Close()
	hops := 0
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		hops++
		http.Redirect(w, r, "/loop", http.StatusFound)
	})
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusMovedPermanently) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
	})
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fine")) })

	got, err := do(t, s, "/here")
	require.NoError(t, err)
	require.Equal(t, nodehttp.Response{Status: 200, Body: "fine"}, got)

	got, err = do(t, s, "/away")
	require.NoError(t, err)
	require.Equal(t, 302, got.Status)

	_, err = do(t, s, "/loop")
	require.ErrorContains(t, err, "stopped after 10 redirects")
	require.Equal(t, 10, hops)
}

func TestBodyIsLimited(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("short"))
			return
		}
		_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
	}))
	defer s.Close()
	got, err := do(t, s, "/")
	require.NoError(t, err)
	require.Len(t, got.Body, nodehttp.MaxBody)

	got, err = do(t, s, "/broken")
	require.ErrorContains(t, err, "reading the answer")
	require.Equal(t, nodehttp.Response{Status: 200}, got)
}

func TestCertificatesAreNotVerified(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	got, err := do(t, s, "/")
	require.NoError(t, err)
	require.Equal(t, 200, got.Status)
}

func TestEachRequestHasItsOwnConnection(t *testing.T) {
	var from []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		from = append(from, r.RemoteAddr+" "+r.Header.Get("Accept-Encoding"))
	}))
	defer s.Close()
	client := nodehttp.New()
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		require.NoError(t, err)
		_, err = client.Do(req, 0)
		require.NoError(t, err)
	}
	require.Len(t, from, 2)
	require.NotEqual(t, from[0], from[1])
	require.True(t, strings.HasSuffix(from[0], " "), "no header but the user's: %q", from[0])
}

func TestProxiesAreIgnored(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	// A name and not an address of the loopback, for which there is never a proxy.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://none.invalid/", nil)
	require.NoError(t, err)
	_, err = nodehttp.New().Do(req, 0)
	require.ErrorContains(t, err, "lookup none.invalid", "the server itself was asked for")
}

func TestDialerLingers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	conn, err := nodehttp.Dialer().DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	on, secs := lingerOf(t, conn.(*net.TCPConn))
	require.EqualValues(t, 1, on)
	require.EqualValues(t, 1, secs)
}

func TestTimeoutIsForAll(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	req, err := nodehttp.Get{
		Action:    &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(int32(port))}, //nolint:gosec // a port
		Container: &v1.Container{}, Host: u.Hostname(),
	}.Request(t.Context())
	require.NoError(t, err)
	_, err = nodehttp.New().Do(req, 50*time.Millisecond)
	require.ErrorContains(t, err, "Client.Timeout exceeded while awaiting headers", "the words that people look for")
}
