package report

import (
	"fmt"
	"strings"
)

// Plugin is one of the user's plugins: how often what it says made a difference, and how often it
// was not followed.
type Plugin struct {
	Name      string `json:"name"`
	Obeyed    int    `json:"obeyed"`
	Overruled int    `json:"overruled"`
	// NeverObeyed and NeverOverruled say why no history can; "" where they must.
	NeverObeyed    string `json:"obeyed_not_applicable"`
	NeverOverruled string `json:"overruled_not_applicable"`
}

// Vacuous names what no history showed of the plugin, and one has to.
func (p *Plugin) Vacuous() (lines []string) {
	if p.Obeyed == 0 && p.NeverObeyed == "" {
		lines = append(lines, "never obeyed: plugin "+p.Name)
	}
	if p.Overruled == 0 && p.NeverOverruled == "" {
		lines = append(lines, "never overruled: plugin "+p.Name)
	}
	return lines
}

// notApplicable are the reasons for which nothing is missing of the plugin, one a line.
func (p *Plugin) notApplicable() (lines []string) {
	if p.Obeyed == 0 && p.NeverObeyed != "" {
		lines = append(lines, p.NeverObeyed+": plugin "+p.Name+" obeyed")
	}
	if p.Overruled == 0 && p.NeverOverruled != "" {
		lines = append(lines, p.NeverOverruled+": plugin "+p.Name+" overruled")
	}
	return lines
}

// matrixOfPlugins shows the plugins with their counts.
func (r *Run) matrixOfPlugins(b *strings.Builder) {
	if len(r.Heeded) > 0 {
		fmt.Fprintf(b, "\nplugin%s  obeyed overruled\n", strings.Repeat(" ", 50))
	}
	for i := range r.Heeded {
		p := &r.Heeded[i]
		end := missing(len(p.Vacuous()) > 0)
		if why := p.notApplicable(); end == "" && len(why) > 0 {
			end = "  " + strings.Join(why, "; ")
		}
		fmt.Fprintf(b, "  %-54s %8d %9d%s\n", p.Name, p.Obeyed, p.Overruled, end)
	}
}
