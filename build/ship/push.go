package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push puts every image of a layout under its tag into the repository. A tag that is there with another digest is refused,
// because clusters may have it by its name; the tag dev alone moves.
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
		if err == nil && there.Digest != digest && tag != "dev" && tag != "dev-wasm" {
			return fmt.Errorf("%s is there with another digest, %s; a version is pushed once: choose another", ref, there.Digest)
		}
		if err := remote.Write(ref, img, withLogin()); err != nil {
			if denied := (*transport.Error)(nil); errors.As(err, &denied) && (denied.StatusCode == 401 || denied.StatusCode == 403) {
				return fmt.Errorf("push to %s: %w; log in with docker login or crane auth login", ref, err)
			}
			return fmt.Errorf("push to %s: %w", ref, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return digests(from, repository, out)
}
