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
// and with it the whole layout, because clusters may have it by its name; the tag dev alone moves.
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
	err = each(from, func(tag string, digest v1.Hash, _ v1.Image) error { return vacant(repo.Tag(tag), digest) })
	if err != nil {
		return err
	}
	err = each(from, func(tag string, _ v1.Hash, img v1.Image) error {
		ref := repo.Tag(tag)
		err := remote.Write(ref, img, withLogin())
		if answered(err, http.StatusUnauthorized, http.StatusForbidden) {
			return fmt.Errorf("push to %s: %w; log in with docker login or crane auth login", ref, err)
		} else if err != nil {
			return fmt.Errorf("push to %s: %w", ref, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return digests(from, repository, out)
}

// vacant says why an image must not be written under a tag, or nothing.
func vacant(ref name.Tag, digest v1.Hash) error {
	if ref.TagStr() == "dev" || ref.TagStr() == "dev-wasm" {
		return nil
	}
	there, err := remote.Head(ref, withLogin())
	switch {
	case err == nil && there.Digest != digest:
		return fmt.Errorf("%s is there with another digest, %s; a version is pushed once: choose another", ref, there.Digest)
	case answered(err, http.StatusNotFound):
		return nil
	// So some registries answer for a repository that is still to be made; who may not read then learns it by the write.
	case answered(err, http.StatusUnauthorized, http.StatusForbidden):
		return nil
	case err != nil:
		return fmt.Errorf("is %s there? The registry does not say, and nothing was pushed: %w", ref, err)
	}
	return nil
}

// answered reports an error that is an answer of the registry with one of the statuses.
func answered(err error, statuses ...int) bool {
	answer := (*transport.Error)(nil)
	return errors.As(err, &answer) && slices.Contains(statuses, answer.StatusCode)
}
