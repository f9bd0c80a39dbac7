// The situations of the matrix, once for every client that a driver wraps as
//
//   login()         connects, the person signs in and allows
//   list()          calls list_notes, for which notes:read is enough; a refresh
//                   may be needed, the person not
//   loginAgain()    the same when authorization is gone: the person may be asked
//   widen()         calls add_note, which needs notes:write, and has the person
//                   allow that
//   spoil()         makes the access token useless
//   refreshToken()  the refresh token it holds
//   restore(token)  puts another refresh token in its place
//   widenByApp()    the same after widen() has failed, by what a program can do
//                   itself, where there is such a thing
//   logout()        revokes what it has, where the client can (RFC 7009)
//
// Each may be async. What a client throws ends the driver: the test compares it
// with the client's limitations.
import { cell, check, control, preRegistered, step } from "./driver.mjs";

// play takes the client through the cell's situation.
export async function play(client) {
  await client.login();
  step("login");
  await client.list();
  step("tool");
  await situations[cell.situation](client);
}

const situations = {
  async login(client) {
    if (!client.logout) return;
    await client.logout();
    step("revoke");
  },

  async refresh(client) {
    const before = await client.refreshToken();
    check(before, "no refresh token was issued");
    await client.spoil();
    await client.list();
    check((await client.refreshToken()) !== before, "the refresh token was not rotated");
    step("refresh");
  },

  async retry(client) {
    const first = await client.refreshToken();
    await situations.refresh(client);
    const second = await client.refreshToken();
    await client.spoil();
    await client.restore(first);
    await client.list();
    check((await client.refreshToken()) === second, "the token before the last one got another successor");
    step("retry");
  },

  async deleted(client) {
    await control("delete-client");
    step("deleted");
    await client.spoil();
    if (preRegistered) return refused(client);
    await client.loginAgain();
    step("login");
    await client.list();
    step("tool");
  },

  async unavailable(client) {
    const before = await client.refreshToken();
    await control("fail-token-once");
    await client.spoil();
    await failure(() => client.list()); // a client may also wait and try again by itself
    step("unavailable");
    if ((await client.refreshToken()) === before) await client.list();
    check((await client.refreshToken()) !== before, "nothing was refreshed");
    step("refresh");
  },

  async wider(client) {
    await client.widen();
    step("wider");
  },

  // stepup is wider, with the program's help where the client needs it.
  async stepup(client) {
    const error = await failure(() => client.widen());
    if (error) {
      if (!client.widenByApp) throw error;
      check(/Server returned 403 after trying upscoping/.test(error), error);
      step("refused");
      await client.widenByApp();
    }
    step("wider");
  },
};

// refused sees that a client which only the operator could bring back ends with
// a clear error: the client's own, or the page that the person gets.
async function refused(client) {
  const error = await failure(() => client.loginAgain());
  check(error, "a client that was removed got in");
  check(/invalid_client|InvalidClient|can.t identify this app/i.test(`${error.name} ${error.code} ${error}`), `the error is not clear: ${error}`);
  step("refused");
}

// failure returns what fn throws.
async function failure(fn) {
  try {
    await fn();
  } catch (error) {
    return error;
  }
}
