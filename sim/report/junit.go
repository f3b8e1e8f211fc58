package report

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// junit is the form that continuous integration reads.
type junit struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Skipped *junitSkipped `xml:"skipped,omitempty"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (j *junit) passed(class, name string) {
	j.Tests++
	j.Cases = append(j.Cases, junitCase{Name: name, Class: class})
}

func (j *junit) failed(class, name, message, text string) {
	j.Tests++
	j.Failures++
	j.Cases = append(j.Cases, junitCase{Name: name, Class: class,
		Failure: &junitFailure{message, text}})
}

func (j *junit) skipped(class, name, why string) {
	j.Tests++
	j.Skipped++
	j.Cases = append(j.Cases, junitCase{Name: name, Class: class, Skipped: &junitSkipped{why}})
}

// JUnit has one case for each property that broke, each situation, rule and plugin. Its failures
// are what makes the exit code of the run another than 0.
func (r *Run) JUnit() ([]byte, error) {
	suite := &junit{Name: "tiersim " + r.Subject,
		Time: strconv.FormatFloat(r.Elapsed.Seconds(), 'f', 3, 64)}
	for i := range r.Failures {
		f := &r.Failures[i]
		suite.failed("property", f.Property, f.Text, f.Screen(false))
	}
	for _, x := range r.Regressions {
		if x.Property == "" {
			suite.passed("regression", x.Scenario)
		}
	}
	const whole = "every history keeps every promise"
	switch {
	case len(r.Failures) > 0, r.PolicyHang != "":
	case r.Interrupted:
		suite.failed("property", whole, "interrupted: "+r.NotTried(), "")
	default:
		suite.passed("property", whole)
	}
	r.junitOfMet(suite)
	if r.Hung > 0 {
		suite.failed("plugin", "every question is answered", r.Hang(), "")
	}
	if r.PolicyHang != "" {
		suite.failed("policy", "every evaluation ends", r.PolicyHang, "")
	}
	for _, seed := range r.Unequal {
		suite.failed("determinism", fmt.Sprintf("seed %d", seed), "two runs differ", "")
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

// junitOfMet adds what had to be met and tried.
func (r *Run) junitOfMet(suite *junit) {
	tried := func(class, name string, is bool, why string) {
		switch {
		case is:
			suite.passed(class, name)
		case len(r.Failures) > 0, r.Hung > 0, r.PolicyHang != "":
			suite.skipped(class, name, "the run failed: what it did not meet says nothing")
		case r.VacuousAllowed:
			suite.skipped(class, name, "VACUOUS: "+why)
		default:
			suite.failed(class, name, "VACUOUS: "+why, "")
		}
	}
	for _, s := range r.Situations {
		if s.NotApplicable != "" {
			suite.skipped("situation", s.Name, s.NotApplicable)
			continue
		}
		tried("situation", s.Name, s.Count > 0, "it was not met")
	}
	for _, rule := range r.Rules {
		tried("rule", rule.Answer+" "+rule.Where, rule.True > 0 && rule.False > 0,
			"true "+tier.Count(rule.True, "time")+", false "+tier.Count(rule.False, "time"))
	}
	for _, p := range r.Heeded {
		missing := p.Vacuous()
		tried("plugin", p.Name, len(missing) == 0, strings.Join(missing, "; "))
	}
	for _, why := range r.Unasked {
		tried("run", "it shows something", false, why)
	}
}
