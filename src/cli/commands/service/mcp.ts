import { readLines } from '../../../client/lines.ts'
import { createTransport, type Transport } from '../../../client/transport.ts'
import { openConnection } from '../../connection/connection.ts'
import { fetchOverSocket } from '../../connection/socket-fetch.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import { ifTaken, printRaw } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { bridgeMcp } from './mcp-bridge.ts'

export const verb: Verb = {
  name: 'service mcp',
  summary: 'serve every command as an MCP tool on standard input and output',
  details:
    'For programs that start MCP servers as processes; programs that use HTTP connect to /mcp of the service instead.\n' +
    'Acts as the agent whose token is in ORC_TOKEN, otherwise as the operator. While the service is unreachable, calls\n' +
    'fail with a message; they work again as soon as it answers. docs/mcp.md has the settings for each program.',
  examples: [
    'ORC_TOKEN=$(orc token Worker) orc service mcp',
    'claude mcp add orc -e ORC_TOKEN=TOKEN -- orc service mcp',
  ],
  async run({ location, program }) {
    process.stdin.setEncoding('utf8')
    await bridgeMcp({
      lines: readLines(process.stdin as AsyncIterable<string>),
      write: (message) => ifTaken(() => printRaw(`${message}\n`)),
      post: postTo(location),
      version: await program.version(),
    })
    return 0
  },
}

/** Looks up the service for each request, because a restart may change its address. */
function postTo(location: TeamLocation) {
  let known: { address: string; token: string; transport: Transport } | undefined
  return async (body: string, headers: Record<string, string>) => {
    const { address, token } = await openConnection(location)
    if (known?.address !== address || known.token !== token) {
      const socket = address.startsWith('unix:') ? fetchOverSocket(address.slice('unix:'.length)) : undefined
      known = { address, token, transport: createTransport(address, token, socket) }
    }
    return await known.transport.ask({ method: 'POST', path: '/mcp', headers, body })
  }
}
