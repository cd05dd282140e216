"""What the page of one training job asks."""
