// Package cmdline reads the command lines of tierd's programs, of each in the same way.
package cmdline

import (
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// exited ends the parser where kong wants to end the process.
type exited int

// Parse reads the arguments of a program into c, a pointer to a struct with kong's tags; one whose
// tags make no sense panics. The command is nil where everything was done that was asked for, as by
// --help: then the program ends with the code. The error says what is wrong, and which help is of
// use.
func Parse(c any, name, description string, args []string, stdout, stderr io.Writer) (
	command *kong.Context, code int, err error) {
	parser := kong.Must(c, kong.Name(name), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 100,
			NoAppDescFormat: true}))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exited:
			command, code, err = nil, int(r), nil
		default:
			panic(r)
		}
	}()
	command, err = parser.Parse(args)
	if p := (*kong.ParseError)(nil); errors.As(err, &p) {
		help := name
		if n := p.Context.Selected(); n != nil {
			help = n.FullPath()
		}
		err = fmt.Errorf("%w\nsee: %s --help", err, help)
	}
	return command, 0, err
}
