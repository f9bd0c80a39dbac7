package app

import (
	"github.com/ostiary-auth/ostiary/registration"
)

// resolver finds the clients of authorization requests: registered ones, and
// those that a metadata document describes, unless the operator wants none.
func (a *App) resolver() (*registration.Resolver, error) {
	r := &registration.Resolver{Clients: a.db}
	if a.cfg.CIMD == "off" {
		return r, nil
	}
	var policy registration.HostPolicy
	for _, rule := range a.cfg.HostRules() {
		policy = append(policy, registration.HostRule{Host: rule.Host, Trust: registration.Trust(rule.Trust)})
	}
	var err error
	r.Documents, err = registration.NewDocuments(registration.DocumentOptions{Clients: a.db, Documents: a.db, Audit: a.db, Tx: a.db,
		Fetch: a.Outbound, CheckURL: a.Outbound.Check, Resources: a.db, Policy: policy, Log: a.o.Log, Now: a.o.Now, Pause: a.o.Pause,
		Budget: registration.FetchBudget{PerSource: a.cfg.RegistrationPerHour, PerSite: a.cfg.CIMDPerHour, Total: a.cfg.RegistrationPerHourTotal}})
	return r, err
}
