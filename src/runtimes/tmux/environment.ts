/** What of the service's own environment an agent gets: enough to work, and nothing that happens to be there. */
const PASSED_ON = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TMPDIR',
  'SSH_AUTH_SOCK',
  // Without them nothing is reached where they are needed.
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'ALL_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'all_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NODE_EXTRA_CA_CERTS',
]
const PASSED_ON_WITH = /^(?:LC_|XDG_)/

/** In every terminfo, and good for 256 colours in tmux. */
const TERM = 'screen-256color'

export function cleanEnvironment(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const clean: Record<string, string> = {}
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && (PASSED_ON.includes(name) || PASSED_ON_WITH.test(name))) clean[name] = value
  }
  // Agents print UTF-8, whatever the service was started with.
  if (clean.LANG === undefined && clean.LC_ALL === undefined) clean.LANG = 'C.UTF-8'
  return { ...clean, TERM }
}

/** The server's own: a person's `tmux -L` must look for the socket where ours put it. */
export function serverEnvironment(
  agents: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return own.TMUX_TMPDIR === undefined ? { ...agents } : { ...agents, TMUX_TMPDIR: own.TMUX_TMPDIR }
}
