"""The bundled trainer: one DDP loop for Hugging Face models, the same on a laptop and in a pod."""
