import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import type { Launch, ProgramLaunchOptions } from '../program.ts'
import { executableOf } from '../settings.ts'
import { OpenCodeSavedState } from './saved-state.ts'
import { OpencodeSettings } from './settings.ts'

const ROLE_FILE = 'opencode-role.md'
/** Neither in the store nor in argv: its holder can answer the agent's permission dialogs. */
const PASSWORD_FILE = 'opencode-password'
export const USERNAME = 'orchub'
const INSTALLED = { program: 'opencode', install: 'npm install --global opencode-ai' }

/** Writes the role and the server's password into the agent's folder; the user's own files stay unchanged. */
export async function prepareLaunch(options: ProgramLaunchOptions): Promise<Launch> {
  const settings = OpencodeSettings.parse(options.settings ?? {})
  const executable = await executableOf(settings, options, INSTALLED)
  const resumed = OpenCodeSavedState.safeParse(options.resume).data
  const conversation = resumed?.conversations.at(-1)?.id
  const port = await findFreePort()
  const password = randomBytes(24).toString('base64url')
  const roleFile = join(options.folder, ROLE_FILE)
  await mkdir(options.folder, { recursive: true, mode: 0o700 })
  await writeFile(roleFile, options.prompt)
  await writeFile(join(options.folder, PASSWORD_FILE), password, { mode: 0o600 })
  return {
    argv: [
      executable,
      ...['--hostname', '127.0.0.1', '--port', String(port)],
      ...(conversation === undefined ? [] : ['--session', conversation]),
      ...settings.args,
    ],
    env: {
      ...settings.env,
      OPENCODE_CONFIG_CONTENT: JSON.stringify(configOf(settings, options.url, roleFile)),
      OPENCODE_SERVER_USERNAME: USERNAME,
      OPENCODE_SERVER_PASSWORD: password,
    },
    savedState: { ...(resumed ?? { conversations: [] }), port } satisfies OpenCodeSavedState,
  }
}

/**
 * Merged over the user's and the project's own configuration; lists of instructions are joined. Instructions
 * are part of every request's system prompt, so that the role survives a compaction and a resume.
 */
function configOf({ model, agent }: OpencodeSettings, url: string, roleFile: string) {
  return {
    instructions: [roleFile],
    mcp: {
      orc: {
        type: 'remote',
        url: `${url}/mcp`,
        headers: { Authorization: 'Bearer {env:ORC_TOKEN}' },
        oauth: false,
      },
    },
    ...(model === undefined ? {} : { model }),
    ...(agent === undefined ? {} : { default_agent: agent }),
  }
}

export async function readPassword(folder: string): Promise<string> {
  return (await readFile(join(folder, PASSWORD_FILE), 'utf8')).trim()
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
