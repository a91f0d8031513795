"""What a job with many ranks needs: an end that all notice, a checkpoint, several nodes."""
