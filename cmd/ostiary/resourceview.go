package main

import (
	"io"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/spf13/cobra"
)

// resourceView is a resource as the command line prints it.
type resourceView struct {
	Resource    string           `json:"resource"`
	Name        string           `json:"name"`
	ClaimedName string           `json:"claimed_name,omitempty"`
	Default     bool             `json:"default"`
	Scopes      []resource.Scope `json:"scopes"`
	// IntrospectionID is with what it asks about tokens.
	IntrospectionID    string  `json:"introspection_client_id,omitempty"`
	OldSecretExpiresAt instant `json:"old_secret_expires_at,omitzero"`
	CreatedAt          instant `json:"created_at"`
	UpdatedAt          instant `json:"updated_at"`
}

func newResourceView(r resource.Resource) resourceView {
	v := resourceView{Resource: r.Identifier, Name: r.Name, ClaimedName: r.ClaimedName, Default: r.Default,
		Scopes: r.Scopes, IntrospectionID: r.Credential.ID, OldSecretExpiresAt: instant{r.Credential.OldSecretExpiresAt}, CreatedAt: instant{r.CreatedAt}, UpdatedAt: instant{r.UpdatedAt}}
	if v.Scopes == nil {
		v.Scopes = []resource.Scope{}
	}
	return v
}

func (c *cli) printResources(cmd *cobra.Command, list []resource.Resource) error {
	views := make([]resourceView, 0, len(list))
	rows := [][]string{{"RESOURCE", "NAME", "DEFAULT", "SCOPES"}}
	for _, r := range list {
		views = append(views, newResourceView(r))
		rows = append(rows, []string{r.Identifier, r.Name, yesNo(r.Default), scopeNames(r)})
	}
	return c.print(cmd, views, func(w io.Writer) { table(w, rows...) })
}

func (c *cli) printResource(cmd *cobra.Command, r resource.Resource) error {
	return c.print(cmd, newResourceView(r), func(w io.Writer) { c.writeResource(w, r) })
}

func (c *cli) writeResource(w io.Writer, r resource.Resource) {
	rows := [][]string{{"resource", r.Identifier}, {"name", r.Name}, {"default", yesNo(r.Default)}}
	if r.ClaimedName != "" {
		rows = append(rows, []string{"calls itself", r.ClaimedName})
	}
	for _, s := range r.Scopes {
		rows = append(rows, []string{"scope", scopeLine(s)})
	}
	if len(r.Scopes) == 0 {
		rows = append(rows, []string{"scopes", "none declared: whatever is asked for is accepted"})
	}
	if cr := r.Credential; cr.Exists() {
		rows = append(rows, []string{"introspection", cr.ID})
		if cr.HasOldSecret(c.now()) {
			rows = append(rows, []string{"old secret", "works until " + cr.OldSecretExpiresAt.UTC().Format(time.RFC3339)})
		}
	}
	table(w, rows...)
}

// scopeLine describes a scope in one line, its marks in parentheses.
func scopeLine(s resource.Scope) string {
	line := s.Name
	if s.Title != "" {
		line += "  " + s.Title
	}
	var marks []string
	for _, m := range []struct {
		set  bool
		text string
	}{
		{s.Default, "default"}, {s.Required, "required"}, {s.Restricted, "restricted"},
		{s.Risk != "", "risk " + string(s.Risk)}, {len(s.Implies) > 0, "implies " + strings.Join(s.Implies, " ")},
		{s.Group != "", "group " + s.Group},
	} {
		if m.set {
			marks = append(marks, m.text)
		}
	}
	if len(marks) > 0 {
		line += "  (" + strings.Join(marks, ", ") + ")"
	}
	return line
}

func scopeNames(r resource.Resource) string {
	var names []string
	for _, s := range r.Scopes {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, " ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
