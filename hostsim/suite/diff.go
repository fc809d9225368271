package suite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

func isTrap(err error) bool { return errors.Is(err, hostsim.ErrTrap) }

const (
	diffContext = 2
	diffLines   = 400 // beyond that many lines a side, no common lines are looked for
	diffShown   = 40
)

// diff shows want's lines with a minus, got's with a plus, and common ones with a space, as far as they are near a
// difference. An empty side has no lines.
func diff(want, got string) string {
	want, got = window(want, got)
	a, b := linesOf(want), linesOf(got)
	rows := align(a, b)
	var out []string
	skipped := false
	for i, row := range rows {
		if row[0] == ' ' && !nearChange(rows, i) {
			skipped = true
			continue
		}
		if skipped {
			out = append(out, "  ...")
			skipped = false
		}
		out = append(out, row)
	}
	if skipped {
		out = append(out, "  ...")
	}
	if len(out) > diffShown {
		out = append(out[:diffShown], "  ...")
	}
	return strings.Join(out, "\n")
}

// window cuts two long lines down to where they begin to differ.
func window(want, got string) (string, string) {
	const most, before = 160, 40
	if max(len(want), len(got)) <= most || strings.Contains(want+got, "\n") {
		return want, got
	}
	same := 0
	for same < min(len(want), len(got)) && want[same] == got[same] {
		same++
	}
	cut := func(s string) string {
		from := max(0, same-before)
		to := min(len(s), from+most)
		return fmt.Sprintf("%s%s%s (%d bytes)", strings.Repeat("...", min(1, from)), s[min(from, to):to], strings.Repeat("...", min(1, len(s)-to)), len(s))
	}
	return cut(want), cut(got)
}

func linesOf(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = visible(l)
	}
	return lines
}

// visible keeps bytes from steering the terminal, and lines to a length that can be read.
func visible(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

func nearChange(rows []string, i int) bool {
	for j := max(0, i-diffContext); j < min(len(rows), i+diffContext+1); j++ {
		if rows[j][0] != ' ' {
			return true
		}
	}
	return false
}

// align puts the longest common sequence of lines side by side.
func align(a, b []string) []string {
	if len(a) > diffLines || len(b) > diffLines {
		a, b = a[:min(len(a), diffLines)], b[:min(len(b), diffLines)]
	}
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var rows []string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			rows = append(rows, "  "+a[i])
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			rows = append(rows, "- "+a[i])
			i++
		default:
			rows = append(rows, "+ "+b[j])
			j++
		}
	}
	return rows
}
