package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The limits that keep files readable.
const (
	columnsMax       = 100 // of a line
	columnsTab       = 1   // as lines are counted by most linters
	columnsTorn      = 70  // below which a line of a comment is torn, if the next word fits below 80
	linesFileMax     = 800
	linesFuncMax     = 70
	linesTestFuncMax = 130
)

// unfinished are words of a comment that ask for work: work belongs into an issue.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

// apology is the phrase that error strings do without: the operation says enough.
const apology = "failed" + " to"

// Shape checks widths, lengths and words. Generated files are exempt.
func Shape(files []*File) []Violation {
	var out []Violation
	for _, f := range files {
		if f.generated() {
			continue
		}
		out = append(out, lines(f)...)
		out = append(out, funcs(f)...)
		out = append(out, words(f)...)
		out = append(out, torn(f)...)
	}
	return out
}

func lines(f *File) []Violation {
	var out []Violation
	tagged := tags(f)
	n := 0
	for line := range strings.Lines(string(f.Source)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		width := utf8.RuneCountInString(line) + (columnsTab-1)*strings.Count(line, "\t")
		if width > columnsMax && !tagged[n] {
			out = append(out, Violation{f.Path, n, "width",
				fmt.Sprintf("%d columns, more than %d", width, columnsMax)})
		}
	}
	if n > linesFileMax {
		out = append(out, Violation{f.Path, 0, "length",
			fmt.Sprintf("%d lines, more than %d: split the file", n, linesFileMax)})
	}
	return out
}

// tags returns the lines on which the tag of a struct's field stands: it cannot be broken.
func tags(f *File) map[int]bool {
	out := map[int]bool{}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && field.Tag != nil {
			out[f.line(field.Tag.Pos())] = true
		}
		return true
	})
	return out
}

func funcs(f *File) []Violation {
	limit := linesFuncMax
	if f.Test() {
		limit = linesTestFuncMax
	}
	var out []Violation
	for _, d := range f.Syntax.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := f.line(d.End()) - f.line(d.Pos()) + 1; n > limit {
			out = append(out, f.at(d, "length", "%s has %d lines, more than %d", d.Name.Name, n,
				limit))
		}
	}
	return out
}

// prose is a line of a comment that is no indented text, heading or list.
var prose = regexp.MustCompile(`^// ([^\s#*0-9+|-].*)$`)

// torn finds lines of comments that end in the middle of a sentence, far from the margin: what an
// edit leaves that did not fill the paragraph anew.
func torn(f *File) []Violation {
	var out []Violation
	for _, group := range f.Syntax.Comments {
		for i, c := range group.List[:len(group.List)-1] {
			this, next := prose.FindStringSubmatch(c.Text),
				prose.FindStringSubmatch(group.List[i+1].Text)
			if this == nil || next == nil || strings.ContainsRune(".:;!?", rune(c.Text[len(c.Text)-1])) {
				continue
			}
			word, _, _ := strings.Cut(next[1], " ")
			width := f.fset.Position(c.End()).Column - 1
			if width < columnsTorn && width+1+utf8.RuneCountInString(word) < columnsTorn+10 {
				out = append(out, f.at(c, "torn", "the line ends before %q, for which it has room", word))
			}
		}
	}
	return out
}

func words(f *File) []Violation {
	var out []Violation
	for _, group := range f.Syntax.Comments {
		for _, c := range group.List {
			if w := unfinished.FindString(c.Text); w != "" {
				out = append(out, f.at(c, "words", "%s: finish it, or open an issue", w))
			}
		}
	}
	if f.Test() {
		return out
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if ok && lit.Kind == token.STRING && strings.Contains(strings.ToLower(lit.Value), apology) {
			out = append(out, f.at(lit, "words", "%q: the operation's name is enough", apology))
		}
		return true
	})
	return out
}
