package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/policies/rego/suite"
)

// junitSuites is the form of JUnit's reports that build servers read.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
	seconds  float64
}

type junitCase struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	File    string      `xml:"file,attr"`
	Line    int         `xml:"line,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitBad   `xml:"failure"`
	Error   *junitBad   `xml:"error"`
	Skipped *struct{}   `xml:"skipped"`
	Out     *junitLines `xml:"system-out"`
}

type junitBad struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type junitLines struct {
	Text string `xml:",chardata"`
}

// writeJUnit writes one suite for each package of tests.
func writeJUnit(w io.Writer, r *suite.Report) error {
	all := junitSuites{Tests: len(r.Results), Failures: r.Count(suite.Fail),
		Errors: r.Count(suite.Error), Skipped: r.Count(suite.Skip)}
	seconds := 0.0
	for i := range r.Results {
		t := &r.Results[i]
		at := -1
		for k := range all.Suites {
			if all.Suites[k].Name == t.Package {
				at = k
			}
		}
		if at < 0 {
			at = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: t.Package})
		}
		all.Suites[at].add(t)
		seconds += t.Duration.Seconds()
	}
	for k := range all.Suites {
		all.Suites[k].Time = fmt.Sprintf("%.6f", all.Suites[k].seconds)
	}
	all.Time = fmt.Sprintf("%.6f", seconds)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(t *suite.Result) {
	c := junitCase{Class: t.Package, Name: t.Name, File: t.File, Line: t.Line,
		Time: fmt.Sprintf("%.6f", t.Duration.Seconds())}
	bad := &junitBad{Message: firstLine(t), Text: details(t)}
	s.Tests++
	s.seconds += t.Duration.Seconds()
	switch t.Outcome {
	case suite.Fail:
		s.Failures++
		c.Failure = bad
	case suite.Error:
		s.Errors++
		c.Error = bad
	case suite.Skip:
		s.Skipped++
		c.Skipped = &struct{}{}
	case suite.Pass:
		if t.Output != "" {
			c.Out = &junitLines{t.Output}
		}
	}
	s.Cases = append(s.Cases, c)
}

// firstLine is why a test did not pass, in a few words.
func firstLine(t *suite.Result) string {
	line, _, _ := strings.Cut(t.Why, "\n")
	return strings.TrimSuffix(line, ":")
}

// writeTAP writes version 14 of the Test Anything Protocol.
func writeTAP(w io.Writer, r *suite.Report) error {
	var p page
	p.line("TAP version 14")
	p.line("1..%d", len(r.Results))
	for i := range r.Results {
		t := &r.Results[i]
		// A # would begin a directive.
		name := strings.ReplaceAll(testName(t), "#", `\#`)
		switch t.Outcome {
		case suite.Pass:
			p.line("ok %d - %s", i+1, name)
		case suite.Skip:
			p.line("ok %d - %s # SKIP its name begins with todo_", i+1, name)
		default:
			p.line("not ok %d - %s", i+1, name)
			p.line("  ---")
			p.line("  at: %q", fmt.Sprintf("%s:%d", t.File, t.Line))
			p.line("  severity: %s", t.Outcome)
			p.line("  message: |")
			for line := range strings.Lines(strings.TrimRight(details(t), "\n")) {
				p.line("    %s", strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "))
			}
			p.line("  ...")
		}
	}
	_, err := p.WriteTo(w)
	return err
}

// The escapes of GitHub's workflow commands, in a message and in a property.
var (
	githubMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A",
		",", "%2C")
)

// annotateGitHub adds a workflow command, which annotates a line of a change, or the change as a
// whole where file is "" and line 0.
func annotateGitHub(p *page, level, file string, line int, title, text string) {
	place := ""
	if file != "" {
		place = "file=" + githubProperty.Replace(file) + ","
	}
	if line > 0 {
		place += fmt.Sprintf("line=%d,", line)
	}
	command := fmt.Sprintf("::%s %stitle=%s::%s", level, place, githubProperty.Replace(title),
		githubMessage.Replace(strings.TrimRight(text, "\n")))
	_, _ = fmt.Fprintln(p, screen.Visible(command))
}

// writeGitHub writes what became of the tests, and a summary.
func writeGitHub(w io.Writer, r *suite.Report, threshold float64) error {
	var p page
	for i := range r.Results {
		t := &r.Results[i]
		switch t.Outcome {
		case suite.Fail, suite.Error:
			annotateGitHub(&p, "error", t.File, t.Line, testName(t), details(t))
		case suite.Skip:
			annotateGitHub(&p, "notice", t.File, t.Line, testName(t), "skipped")
		case suite.Pass:
		}
	}
	if r.Coverage.Percent() < threshold {
		for _, f := range r.Coverage.Files {
			for _, l := range f.Missed {
				annotateGitHub(&p, "warning", f.Path, l.First, "coverage", "no test reaches this")
			}
		}
	}
	p.line("%s", summary(r))
	_, err := p.WriteTo(w)
	return err
}

// writeGitHubError writes why a run is no success where no test says it: policies that do not load,
// no test at all, a coverage below the threshold.
func writeGitHubError(w io.Writer, why error) error {
	var p page
	var wrong rego.Errors
	var failed *checkError
	switch {
	case errors.As(why, &wrong):
		for _, e := range wrong {
			annotateGitHub(&p, "error", e.Path, e.Line, "policy", e.Text)
		}
	case errors.As(why, &failed):
		annotateGitHub(&p, "error", "", 0, "policy test", failed.Error())
	}
	_, err := p.WriteTo(w)
	return err
}
