package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push puts every image of a layout under its tag into the repository. A tag that is there with another digest is refused,
// because clusters may have it by its name, and so is one of which the registry does not tell; the tag dev alone moves.
func push(layoutName, repository string, out io.Writer) error {
	repo, err := name.NewRepository(repository)
	if err != nil {
		return fmt.Errorf("%q names no repository (REGISTRY/NAME, without a tag): %w", repository, err)
	}
	from, done, err := openLayout(layoutName)
	if err != nil {
		return err
	}
	defer done()
	err = each(from, func(tag string, digest v1.Hash, img v1.Image) error {
		ref := repo.Tag(tag)
		there, err := remote.Head(ref, withLogin())
		switch {
		case tag == "dev" || tag == "dev-wasm":
		case err == nil && there.Digest != digest:
			return fmt.Errorf("%s is there with another digest, %s; a version is pushed once: choose another", ref, there.Digest)
		case err != nil && !answered(err, http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden): // of what is not there, some say the latter
			return fmt.Errorf("is %s there? %w; nothing was pushed: try again", ref, err)
		}
		err = remote.Write(ref, img, withLogin())
		switch {
		case answered(err, http.StatusUnauthorized, http.StatusForbidden):
			return fmt.Errorf("push to %s: %w; log in with docker login or crane auth login", ref, err)
		case err != nil:
			return fmt.Errorf("push to %s: %w", ref, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return digests(from, repository, out)
}

// answered tells whether an error is a registry's answer of one of these statuses.
func answered(err error, statuses ...int) bool {
	answer := (*transport.Error)(nil)
	return errors.As(err, &answer) && slices.Contains(statuses, answer.StatusCode)
}
