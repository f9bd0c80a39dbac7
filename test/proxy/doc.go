// Package proxy holds the proxies that the documents recommend to what they are
// recommended for: it runs the configuration files of examples/ as they are, but for
// addresses and certificates, in front of an Ostiary.
package proxy
