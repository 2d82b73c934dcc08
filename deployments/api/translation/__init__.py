"""Other APIs than OpenAI's chat completions, each as a chat completion: its requests on their way in, its answers on their way out."""
