// Compose reads a Compose file as Docker does, by the Compose specification's own library, and prints as JSON what it
// means: names resolved, defaults filled in. It talks to no Docker.
//
//	go run -C build/compose . FILE
//
// It is a module of its own, so that the library and what that needs stay out of the project's go.mod.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: compose FILE\nprints what a Compose file means, as JSON")
		os.Exit(2)
	}
	if err := show(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "compose: %v\n", err)
		os.Exit(1)
	}
}

func show(file string) error {
	options, err := cli.NewProjectOptions([]string{file})
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	text, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(text))
	return err
}
