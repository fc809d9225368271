package plugin

// version is the plugin's own; a release sets it.
const version = "0.1.0-dev"
