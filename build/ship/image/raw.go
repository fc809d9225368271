package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Blob is a config or a layer, as a registry keeps it.
type Blob struct {
	Type        types.MediaType
	Content     []byte
	Annotations map[string]string
}

func (b Blob) descriptor() v1.Descriptor {
	return v1.Descriptor{MediaType: b.Type, Size: int64(len(b.Content)), Digest: digest(b.Content), Annotations: b.Annotations}
}

func digest(content []byte) v1.Hash {
	sum := sha256.Sum256(content)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}

// New is an image of exactly these parts, whether or not they make sense together.
func New(manifestType types.MediaType, config Blob, annotations map[string]string, layers ...Blob) (v1.Image, error) {
	m := v1.Manifest{SchemaVersion: 2, MediaType: manifestType, Config: config.descriptor(), Layers: []v1.Descriptor{}, Annotations: annotations}
	for _, l := range layers {
		m.Layers = append(m.Layers, l.descriptor())
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return partial.CompressedToImage(&raw{manifestType, manifest, config, layers})
}

// raw is what go-containerregistry makes an image of.
type raw struct {
	manifestType types.MediaType
	manifest     []byte
	config       Blob
	layers       []Blob
}

func (r *raw) MediaType() (types.MediaType, error) { return r.manifestType, nil }
func (r *raw) RawManifest() ([]byte, error)        { return r.manifest, nil }
func (r *raw) RawConfigFile() ([]byte, error)      { return r.config.Content, nil }
func (b Blob) Digest() (v1.Hash, error)            { return digest(b.Content), nil }
func (b Blob) Size() (int64, error)                { return int64(len(b.Content)), nil }
func (b Blob) MediaType() (types.MediaType, error) { return b.Type, nil }
func (b Blob) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(b.Content)), nil
}
func (r *raw) LayerByDigest(want v1.Hash) (partial.CompressedLayer, error) {
	for _, b := range append([]Blob{r.config}, r.layers...) {
		if digest(b.Content) == want {
			return b, nil
		}
	}
	return nil, fmt.Errorf("image: no layer %s", want)
}
