package sandbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/stages/sandbox"
)

func TestDNS(t *testing.T) {
	host := &runtimeapi.DNSConfig{Servers: []string{"192.0.2.1"}, Searches: []string{"corp.example", "cluster.local"}, Options: []string{"timeout:1", "rotate"}}
	node := sandbox.DNS{ClusterServers: []string{"10.96.0.10"}, ClusterDomain: "cluster.local", Host: host}
	inCluster := &runtimeapi.DNSConfig{
		Servers:  []string{"10.96.0.10"},
		Searches: []string{"ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"},
		Options:  []string{"ndots:5"},
	}
	noCluster := sandbox.DNS{Host: host}
	for name, tc := range map[string]struct {
		dns     sandbox.DNS
		spec    v1.PodSpec
		want    *runtimeapi.DNSConfig
		warning string
	}{
		"ClusterFirst":                     {dns: node, spec: v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, want: inCluster},
		"no policy":                        {dns: node, want: inCluster},
		"ClusterFirst on the host network": {dns: node, spec: v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, HostNetwork: true}, want: host},
		"ClusterFirstWithHostNet":          {dns: node, spec: v1.PodSpec{DNSPolicy: v1.DNSClusterFirstWithHostNet, HostNetwork: true}, want: inCluster},
		"Default":                          {dns: node, spec: v1.PodSpec{DNSPolicy: v1.DNSDefault}, want: host},
		"None":                             {dns: node, spec: v1.PodSpec{DNSPolicy: v1.DNSNone}, want: &runtimeapi.DNSConfig{}},
		"no cluster DNS": {
			dns: noCluster, spec: v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, want: host,
		},
		"no cluster DNS, but it was asked for": {
			dns: noCluster, spec: v1.PodSpec{DNSPolicy: v1.DNSClusterFirstWithHostNet}, want: host, warning: "MissingClusterDNS",
		},
		"no resolv.conf": {
			dns: sandbox.DNS{NodeIPs: []string{"fd00::1", "10.0.0.1"}}, spec: v1.PodSpec{DNSPolicy: v1.DNSDefault},
			want: &runtimeapi.DNSConfig{Servers: []string{"::1", "127.0.0.1"}, Searches: []string{"."}},
		},
		"no resolv.conf and no address": {
			spec: v1.PodSpec{DNSPolicy: v1.DNSDefault},
			want: &runtimeapi.DNSConfig{Servers: []string{"127.0.0.1"}, Searches: []string{"."}},
		},
		"dnsConfig is added": {
			dns: node,
			spec: v1.PodSpec{DNSPolicy: v1.DNSDefault, DNSConfig: &v1.PodDNSConfig{
				Nameservers: []string{"192.0.2.1", "192.0.2.9"}, Searches: []string{"cluster.local", "x.y"},
				Options: []v1.PodDNSConfigOption{{Name: "timeout", Value: ptr.To("9")}, {Name: "debug"}, {Name: "", Value: ptr.To("no")}},
			}},
			want: &runtimeapi.DNSConfig{
				Servers: []string{"192.0.2.1", "192.0.2.9"}, Searches: []string{"corp.example", "cluster.local", "x.y"},
				Options: []string{"timeout:9", "rotate", "debug"},
			},
		},
		"too many servers": {
			dns:     node,
			spec:    v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Nameservers: []string{"1", "2", "3", "4"}}},
			want:    &runtimeapi.DNSConfig{Servers: []string{"1", "2", "3"}},
			warning: "DNSConfigForming",
		},
		"a search path too long": {
			dns:     node,
			spec:    v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Searches: []string{strings.Repeat("a", 254), "b"}}},
			want:    &runtimeapi.DNSConfig{Searches: []string{"b"}},
			warning: "DNSConfigForming",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: tc.spec}
			before := host.String()
			got, warnings := tc.dns.For(p)
			require.Empty(t, cmp.Diff(tc.want, got, protocmp.Transform()))
			if tc.warning == "" {
				require.Empty(t, warnings)
			} else {
				require.Len(t, warnings, 1)
				require.Equal(t, tc.warning, warnings[0].Reason)
			}
			require.Equal(t, before, host.String(), "the node's settings are shared by all pods")
		})
	}
}

func TestDNSStaysWithinWhatResolversRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		searches := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,260}`), 0, 60).Draw(t, "searches")
		servers := rapid.SliceOfN(rapid.StringMatching(`[0-9]{1,3}`), 0, 6).Draw(t, "servers")
		p := &v1.Pod{Spec: v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Nameservers: servers, Searches: searches}}}
		got, _ := sandbox.DNS{}.For(p)
		require.LessOrEqual(t, len(got.Servers), 3)
		require.LessOrEqual(t, len(got.Searches), 32)
		require.LessOrEqual(t, len(strings.Join(got.Searches, " ")), 2048)
		for _, s := range got.Searches {
			require.Contains(t, searches, s)
		}
	})
}

func TestParseResolvConf(t *testing.T) {
	got, err := sandbox.ParseResolvConf(`# comment
; another
nameserver 192.0.2.1  # not an address
nameserver	2001:db8::1
domain old.example
search one.example two.example
search three.example. . four
options ndots:2 rotate
options ndots:3
sortlist 10.0.0.0
`)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&runtimeapi.DNSConfig{
		Servers:  []string{"192.0.2.1", "2001:db8::1"},
		Searches: []string{"three.example", "four"},
		Options:  []string{"ndots:3", "rotate"},
	}, got, protocmp.Transform()))

	_, err = sandbox.ParseResolvConf("search a\n\nnameserver\n")
	require.EqualError(t, err, "line 3: nameserver without an address")
}

func FuzzParseResolvConf(f *testing.F) {
	f.Add("nameserver 1.2.3.4\nsearch a. b\noptions x:1 x\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := sandbox.ParseResolvConf(text)
		require.Equal(t, err == nil, c != nil, fmt.Sprint(err))
	})
}
