/** What of the service's own environment the tmux server gets: what a person needs who opens a window there. */
export const SERVER_VARIABLES = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'SSH_AUTH_SOCK'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY'],
  ...['http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS'],
  // A person's `tmux -L` must look for the socket where ours put it.
  'TMUX_TMPDIR',
] as const
const ALSO = /^(?:LC_|XDG_)/

/** In every terminfo, and good for 256 colours in tmux. */
export const TERM = 'screen-256color'

/** No secrets: anyone at the server can ask for it, and it outlives the service. */
export function serverEnvironment(own: Readonly<NodeJS.ProcessEnv>): Record<string, string> {
  const names: readonly string[] = SERVER_VARIABLES
  const passed: Record<string, string> = {}
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && (names.includes(name) || ALSO.test(name))) passed[name] = value
  }
  if (!passed.LANG && !passed.LC_ALL) passed.LANG = 'C.UTF-8'
  return { ...passed, TERM }
}
