"""Large objects, which go part by part."""
