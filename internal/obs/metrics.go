package obs

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics counts requests. Its registry is its own: two servers in one process
// do not meet.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// NewMetrics returns the metrics of one server.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ostiary_http_requests_total",
			Help: "Requests answered, by route, method and status."}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ostiary_http_request_duration_seconds",
			Help:    "Time to answer a request, by route.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ostiary_http_requests_in_flight",
			Help: "Requests being answered."}),
	}
	m.registry.MustRegister(m.requests, m.duration, m.inFlight,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the registry.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// routes are the first path segments that are counted by name; every other path
// is "other", since a label that strangers choose grows without end.
var routes = []string{"authorize", "token", "register", "revoke", "introspect", "jwks.json", "sign-in", "sign-out",
	"consent", "return", "account", "setup", "language", "device", "admin", "static", ".well-known"}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete}

// Middleware counts what next answers. base is the issuer's path.
func (m *Metrics) Middleware(base string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, route := time.Now(), routeLabel(base, r.URL.Path)
		rec := &statusRecorder{ResponseWriter: w}
		m.inFlight.Inc()
		defer func() {
			m.inFlight.Dec()
			m.requests.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(rec.code())).Inc()
			m.duration.WithLabelValues(route).Observe(time.Since(start).Seconds())
		}()
		next.ServeHTTP(rec, r)
	})
}

// routeLabel returns the first segment below base when it is one of ours.
func routeLabel(base, path string) string {
	if rest, ok := strings.CutPrefix(path, base+"/"); ok {
		path = "/" + rest
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if slices.Contains(routes, first) {
		return "/" + first
	}
	return "other"
}

func methodLabel(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

// statusRecorder remembers the status that was sent.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader records the first final status.
func (r *statusRecorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap serves http.ResponseController.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *statusRecorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
