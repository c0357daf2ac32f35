/** Whether a host is this machine, so that unencrypted traffic cannot be intercepted. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host)
}

/** The same for a URL, which has IPv6 addresses in brackets. */
export function leadsToLoopback({ hostname }: URL): boolean {
  return isLoopback(hostname.replace(/^\[|\]$/g, ''))
}
