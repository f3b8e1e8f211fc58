// Command moody is a Go plugin that behaves as its configuration says, to try what programs of the
// Go runtime do in the host: print, panic, exit, sleep, look at the clock, use random numbers and
// maps, start goroutines, look for files, and allocate without end.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/tierd/tierd/runtime/plugin/sdk/go/tierd"
)

func init() { tierd.Register(&moody{}) }

func main() {}

type moody struct {
	mood  string
	hoard [][]byte
}

// Configure implements tierd.Plugin.
func (m *moody) Configure(s *tierd.Setup) error {
	var config struct {
		Mood string `json:"mood"`
	}
	if err := json.Unmarshal(s.Config, &config); err != nil {
		return err
	}
	m.mood = config.Mood
	if m.mood == "refuse" {
		return errors.New("not today")
	}
	return nil
}

// Select implements tierd.Plugin.
func (m *moody) Select(b *tierd.Batch, out *tierd.Choices) {
	switch m.mood {
	case "print":
		fmt.Println("hello from standard output")
		fmt.Fprintln(os.Stderr, "hello from standard error")
		fmt.Print("and a line without an end")
	case "panic":
		panic("a bad day")
	case "bounds":
		out.Score[b.Len()] = 1
	case "exit":
		os.Exit(3)
	case "sleep":
		began := time.Now()
		time.Sleep(time.Hour)
		out.Score[0] = int64(time.Since(began) / time.Hour)
	case "clock":
		out.Score[0] = time.Now().Unix()
	case "random":
		for i := range out.Score {
			out.Score[i] = rand.Int64()
		}
	case "maps":
		out.Score[0] = mapOrder()
	case "goroutines":
		out.Score[0] = sum(100)
	case "files":
		if _, err := os.ReadFile("/etc/passwd"); err != nil {
			tierd.Log(err.Error())
		}
		out.Score[0] = int64(len(os.Args) + len(os.Environ()))
	case "hoard":
		for {
			m.hoard = append(m.hoard, make([]byte, 1<<20))
		}
	case "spin":
		for {
		}
	}
}

// mapOrder folds the order in which a map is walked into a number.
func mapOrder() (order int64) {
	m := map[int]bool{}
	for i := range 20 {
		m[i] = true
	}
	for i := range m {
		order = order*31 + int64(i)
	}
	return order
}

// sum adds the numbers up to n, each from a goroutine of its own.
func sum(n int) (total int64) {
	c := make(chan int)
	for i := range n {
		go func() { c <- i }()
	}
	for range n {
		total += int64(<-c)
	}
	return total
}
