import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { loadTeam, openClient, withStore } from '../../connection/client.ts'
import { findService, findToken, operatorFile, type TeamLocation } from '../../connection/connection.ts'
import { exitCode, noTeam } from '../../errors.ts'
import { counted } from '../../output/layout.ts'
import { paint, plain, print, printJson, type Style } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'service doctor',
  summary: 'check everything the service needs, including the store',
  details: 'Exits with 1 if a check fails. While no service runs, it reads the whole store.',
  examples: ['orc service doctor', 'orc service doctor --json'],
  async run({ location, json }) {
    const findings: (DoctorFinding & { check: string })[] = []
    for (const [check, examine] of Object.entries(CHECKS)) {
      const finding = await examine(location).catch(unexpected)
      findings.push({ check, ...finding })
      if (!json) print(findingText(check, finding))
    }
    const ok = findings.every(({ state }) => state !== 'fail')
    if (json) printJson({ ok, checks: findings })
    return exitCode(ok ? 'ok' : 'error')
  },
}

/** A check that throws counts as failed. */
function unexpected(error: Error & { hint?: string }): DoctorFinding {
  return { state: 'fail', text: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) }
}

const COLOUR: Record<DoctorFinding['state'], Style> = { ok: 'green', warn: 'yellow', fail: 'red' }

function findingText(check: string, { state, text, hint }: DoctorFinding): string {
  const line = `${paint(COLOUR[state], state.padEnd(4))}  ${check.padEnd(12)}  ${plain(text)}`
  return hint === undefined ? line : `${line}\n${' '.repeat(20)}${paint('dim', `hint: ${plain(hint)}`)}`
}

interface DoctorFinding {
  state: 'ok' | 'warn' | 'fail'
  text: string
  hint?: string
}

const NODE_NEEDED = 24
const GIB = 1024 ** 3

/** Ordered so that each check comes after those it depends on. */
const CHECKS: Readonly<Record<string, (location: TeamLocation) => Promise<DoctorFinding>>> = {
  node: async () => {
    const { node } = process.versions
    return Number.parseInt(node, 10) >= NODE_NEEDED
      ? ok(`Node ${node}`)
      : { state: 'fail', text: `Node ${node}`, hint: `Orchub needs Node ${NODE_NEEDED} or newer.` }
  },

  config: async ({ configFile }) => {
    if (configFile === undefined || !existsSync(configFile)) throw noTeam(configFile)
    const [{ formatProblems }, { readTeam }] = await Promise.all([
      import('../../../config/config.ts'),
      import('../../../main.ts'),
    ])
    const loaded = readTeam(configFile)
    if (!loaded.ok) {
      const { line, message, hint } = loaded.error[0]!
      return {
        state: 'fail',
        text: `${configFile}:${line}: ${message}`,
        hint: `${hint} All mistakes: orc rules check`,
      }
    }
    if (loaded.value.warnings.length > 0)
      return { state: 'warn', text: formatProblems(loaded.value.warnings, configFile) }
    return ok(`${configFile}, ${counted(loaded.value.config.agents.length, 'agent')}`)
  },

  state: async ({ stateFolder }) => {
    if (stateFolder === undefined) return UNKNOWN
    if (!existsSync(stateFolder)) return ok(`${stateFolder} is created at the first start of the service`)
    accessSync(stateFolder, constants.R_OK | constants.W_OK | constants.X_OK)
    const mode = statSync(stateFolder).mode & 0o777
    if ((mode & 0o077) === 0) return ok(`${stateFolder}, accessible only to you`)
    return { state: 'warn', text: `other users can read ${stateFolder}`, hint: `chmod 700 ${stateFolder}` }
  },

  token: async (location) => {
    if (process.env.ORC_TOKEN !== undefined) {
      await findToken(location)
      return ok('ORC_TOKEN is set: you act as an agent')
    }
    const file = operatorFile(location)
    if (file === undefined || !existsSync(file))
      return ok("the operator's token is created at the first start of the service")
    await findToken(location)
    return ok(`${file}, readable only by you`)
  },

  service: async (location) => {
    try {
      const address = await findService(location)
      await (await openClient(location)).health()
      return ok(`answers at ${address}`)
    } catch (error) {
      if (!(error instanceof AppError) || !/^(SERVICE_UNREACHABLE|NOT_FOUND)$/.test(error.code)) throw error
      if (error.code === 'NOT_FOUND') return { ...UNKNOWN, state: 'warn' }
      return { state: 'warn', text: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) }
    }
  },

  store: async (location) => {
    const isRunning = await findService(location).then(
      () => true,
      () => false,
    )
    if (process.env.ORC_TOKEN !== undefined) return { state: 'warn', text: 'only the operator can check it' }
    return isRunning ? await checkOnline(location) : await checkOffline(location)
  },

  disk: async ({ stateFolder }) => {
    const folder = nearestFolder(stateFolder ?? process.cwd())
    const { bavail, bsize } = statfsSync(folder)
    const free = bavail * bsize
    const text = `${(free / GIB).toFixed(1)} GiB free at ${folder}`
    if (free > GIB) return ok(text)
    return {
      state: free > GIB / 20 ? 'warn' : 'fail',
      text,
      hint: 'Free some space. On a full disk Orchub refuses new commands; accepted ones are safe.',
    }
  },

  tmux: async () => {
    try {
      return ok(execFileSync('tmux', ['-V'], { encoding: 'utf8', timeout: 5000 }).trim())
    } catch {
      return {
        state: 'warn',
        text: 'tmux is missing',
        hint: 'Agents in terminals need it: apt-get install tmux, or brew install tmux.',
      }
    }
  },
}

/** The config check already says what is wrong with the configuration. */
const UNKNOWN: DoctorFinding = { state: 'fail', text: 'unknown without a valid configuration' }

function ok(text: string): DoctorFinding {
  return { state: 'ok', text }
}

async function checkOnline(location: TeamLocation): Promise<DoctorFinding> {
  const { ok: isSound, message } = await (await openClient(location)).verifyAudit()
  return isSound ? ok(message) : damaged(message)
}

async function checkOffline(location: TeamLocation): Promise<DoctorFinding> {
  const config = await loadTeam(location).catch((error: unknown) => {
    const isOfConfig = error instanceof AppError && /^(NOT_FOUND|CONFIG_INVALID)$/.test(error.code)
    if (!isOfConfig) throw error
  })
  if (config === undefined) return UNKNOWN
  const { store: settings } = config
  if (settings.engine === 'sqlite' && !existsSync(settings.file))
    return ok(`${settings.file} is created at the first start of the service`)
  return await withStore(location, async ({ store, verifyAudit }) => {
    const problems = await store.check()
    if (problems.length > 0) return damaged(problems.join('; '))
    const { ok: isSound, message } = await verifyAudit()
    return isSound ? ok(`${settings.shown}: ${message}`) : damaged(message)
  })
}

function damaged(text: string): DoctorFinding {
  return {
    state: 'fail',
    text,
    hint: 'Copy the state folder, then restore the last backup.',
  }
}

function nearestFolder(path: string): string {
  return existsSync(path) ? path : nearestFolder(dirname(path))
}
