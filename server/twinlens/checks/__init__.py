"""Static checks of how output capturing and class patching are declared."""
