# Start-up file of JupyterLab's terminals: your own settings, then the course's environment in front of all.
if [ -f ~/.bashrc ]; then . ~/.bashrc; fi
if [ -f "$LABS_ENV/bin/activate" ]; then . "$LABS_ENV/bin/activate"; else PATH="$LABS_ENV/bin:$PATH"; fi
