import { spawn } from 'node:child_process'
import { AppError } from '../../../base/errors.ts'
import { openClient } from '../../connection/client.ts'
import { openConnection } from '../../connection/connection.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'open',
  summary: 'open the control room in a browser with a one-time link',
  details:
    'The session has the rights of your token. The link is valid for 5 minutes, the session for 7 days.\n' +
    '`orc token list` shows it; `orc token revoke ID` ends it at once.',
  options: [{ name: 'print', summary: 'print the link without opening a browser' }],
  examples: ['orc open', 'orc open --print'],
  async run({ location, json, flag }) {
    const { address } = await openConnection(location)
    if (address.startsWith('unix:')) {
      throw new AppError('CONFLICT', 'A browser cannot reach a service on a Unix socket', {
        hint: 'Make it listen on a port: set service.port in orc.yaml and remove unix_socket.',
      })
    }
    const { path, expires_at } = await (await openClient(location)).mintLogin()
    const url = address + path
    if (json) printJson({ url, expires_at })
    else print(url)
    if (!json && !flag('print') && process.stdout.isTTY === true) openInBrowser(url)
    return 0
  },
}

/** Ignores a missing browser, because the link was printed. */
function openInBrowser(url: string) {
  const command = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(command, [url], { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}
