"""Inputs of set-ups: servers of images."""

INPUTS: dict[str, str] = {
    "num_image_pixels": "of an image as it comes",
    "packed_bytes_ratio": "bytes of a packed image over its pixels",
    "num_network_side_pixels": "width and height that a network takes in",
    "num_patch_side_pixels": "width and height of a patch",
    "num_core_pixels_per_s": "that one core unpacks, resizes and normalises",
    "num_device_pixels_per_s": "that the device does",
}
